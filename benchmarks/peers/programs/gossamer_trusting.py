"""Gossamer, with a certificate of the benchmark's own to trust: gossamer_trusting.py CERTIFICATE VERB …"""

import sys

from gossamer.cli.main import main
from gossamer.fetch import curl_engine

certificate = sys.argv[1]
curl_engine.ca_file = lambda: certificate
sys.exit(main(sys.argv[2:]))
