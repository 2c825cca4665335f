"""The packing list after the registration: revised by a proposal that both parties approve (装箱单修订). Attempts keep the list they began with."""
