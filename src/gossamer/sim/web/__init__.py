"""Which hosts and pages does the synthetic web have, and who serves and judges them? Begin with `web`."""
