"""What does a page of HTML say, and what does it lead to? `html` reads it with `scan`; `tree` for what needs one."""
