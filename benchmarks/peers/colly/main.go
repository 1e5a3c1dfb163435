// Colly, asynchronous, 16 requests at once: follow every link within the host.
package main

import (
	"net/url"
	"os"
	"strings"

	"github.com/gocolly/colly/v2"
)

func main() {
	start, err := url.Parse(os.Args[1])
	if err != nil {
		panic(err)
	}
	collector := colly.NewCollector(colly.AllowedDomains(start.Hostname(), start.Host), colly.Async(true))
	collector.IgnoreRobotsTxt = false
	if err := collector.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 16}); err != nil {
		panic(err)
	}
	collector.OnHTML("a[href]", func(element *colly.HTMLElement) {
		// Colly takes a.html#b for another page than a.html.
		target, _, _ := strings.Cut(element.Attr("href"), "#")
		if target != "" {
			_ = element.Request.Visit(target)
		}
	})
	if err := collector.Visit(os.Args[1]); err != nil {
		panic(err)
	}
	collector.Wait()
}
