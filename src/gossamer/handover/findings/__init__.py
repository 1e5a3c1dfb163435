"""What is wrong with a site: broken links, missing pages, slow or thin ones, sitemaps that lie?"""
