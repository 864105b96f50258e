//! Head-only work on features: everything that needs no pass through the backbone.
