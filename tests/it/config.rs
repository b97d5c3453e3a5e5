//! Tests of configuration follow.
