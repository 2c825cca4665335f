"""A simulated inference server: an OpenAI-compatible engine whose clock follows a small model of a GPU and of a KV-cache tier.

Standard library only, Python 3.8 and up. What is real: the HTTP, the files of the external tier with their reads and writes, the page
cache, the memory. What is modelled: how long prefill, decoding and a transfer take. It is told what to model by one configuration
file and knows nothing of who measures it or why.
"""

__version__ = "1.0"
