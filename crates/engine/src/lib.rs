//! Onrush.
