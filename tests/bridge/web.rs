//! An HTTP rail end to end.
