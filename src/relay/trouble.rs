//! Says a thing once that goes wrong again and again.

use crate::store::StoreError;

/// What keeps a loop from its work, if anything does.
#[derive(Default)]
pub(super) struct Trouble(Option<String>);

impl Trouble {
    /// Whether somebody has to be told: it has just begun, or it is another than before.
    pub(super) fn is_news(&mut self, error: &StoreError) -> bool {
        let words = error.to_string();
        self.0.replace(words.clone()) != Some(words)
    }

    /// It works. Says whether that is news.
    pub(super) fn is_over(&mut self) -> bool {
        self.0.take().is_some()
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
        assert!(trouble.is_over() && !trouble.is_over());
        assert!(trouble.is_news(&StoreError::ConnectionLost));
    }
}
