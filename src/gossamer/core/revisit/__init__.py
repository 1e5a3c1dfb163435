"""When is a page fetched again? Pure: facts of visits go in, waits come out.

`rate` learns how often a page changes, `priors` what to expect of a page that was hardly visited, `interval` how long
to wait for a price of a fetch, `price` which price spends the budget, `classes` whose pages matter more, `hints` how
far sites are believed, `gone` what follows if a page is missing, `page` what is stored per URL. The reasons:
docs/revisits.md.
"""
