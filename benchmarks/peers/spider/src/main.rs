//! spider, 16 requests at once, no delay: follow every link within the host.
use spider::tokio;
use spider::website::Website;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let start = std::env::args().nth(1).expect("a start URL");
    let mut website = Website::new(&start);
    website
        .with_respect_robots_txt(true)
        .with_concurrency_limit(Some(16))
        .with_delay(0);
    website.crawl().await;
}
