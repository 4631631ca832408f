//! Says a thing once that goes wrong again and again.

use crate::store::StoreError;

/// A trouble that shows itself in more ways than this is told again.
const WAYS: usize = 8;

/// What keeps a loop from its work, if anything does: each way in which it has shown itself so far. A server that
/// turns us away says now this, now that.
#[derive(Default)]
pub(super) struct Trouble(Vec<String>);

impl Trouble {
    /// Whether somebody has to be told: it has not shown itself like this since it began.
    pub(super) fn is_news(&mut self, error: &StoreError) -> bool {
        let words = error.to_string();
        if self.0.contains(&words) {
            return false;
        }
        if self.0.len() == WAYS {
            self.0.clear();
        }
        self.0.push(words);
        true
    }

    /// It works. Says whether that is news.
    pub(super) fn is_over(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_told_once_until_it_is_over() {
        let mut trouble = Trouble::default();
        assert!(!trouble.is_over());
        assert!(trouble.is_news(&StoreError::ConnectionLost));
        assert!(!trouble.is_news(&StoreError::ConnectionLost));
        assert!(trouble.is_news(&StoreError::Protocol("another".to_owned())));
        assert!(!trouble.is_news(&StoreError::ConnectionLost), "now this, now that");
        assert!(trouble.is_over() && !trouble.is_over());
        assert!(trouble.is_news(&StoreError::ConnectionLost));
    }
}
