//! What the suites of this folder share.
