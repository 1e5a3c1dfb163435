"""How are answers stored, found again and proven whole? WARC files (`writer`, `reader`), their index (`cdxj`), their
recovery.
"""
