"""Documents for others in a topic of Kafka: `--feed kafka://broker:port,…/topic`."""
