"""Which node owns which shard, which shards belong to a region, and when is a crawl on many machines over?"""
