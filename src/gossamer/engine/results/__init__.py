"""What follows from an answer? `page_results`, `robots_results` and `visit_results`, by the kind of the request."""
