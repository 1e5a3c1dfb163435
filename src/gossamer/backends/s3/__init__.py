"""S3: objects in a bucket."""
