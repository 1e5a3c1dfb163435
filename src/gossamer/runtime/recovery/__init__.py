"""What had a dead process stored but not reported, and how is it finished? `recovery` is run before a crawl goes on."""
