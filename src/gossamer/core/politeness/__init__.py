"""How long must a host, an address or a domain be left alone?

`pace` decides for a host, `gates` for what hosts share.
"""
