"""Gossamer, with a certificate of the benchmark's own to trust: gossamer_trusting.py CERTIFICATE VERB …"""

import sys

from gossamer.cli.main import main
from gossamer.fetch import http

certificate = sys.argv[1]
http.ca_file = lambda: certificate
sys.exit(main(sys.argv[2:]))
