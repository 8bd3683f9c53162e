//! Two tasks.
