//! Says a thing once that goes wrong again and again.

use std::collections::BTreeMap;

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
        if self.knows(error) {
            return false;
        }
        if self.0.len() == WAYS {
            self.0.clear();
        }
        self.0.push(error.to_string());
        true
    }

    fn knows(&self, error: &StoreError) -> bool {
        self.0.contains(&error.to_string())
    }

    /// It works. Says whether that is news.
    pub(super) fn is_over(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

/// The troubles of chores that are done in turn. One that works says nothing of another that does not, and a database
/// that is away keeps all of them from their work, but is told once.
#[derive(Default)]
pub(super) struct Troubles(BTreeMap<&'static str, Trouble>);

impl Troubles {
    pub(super) fn is_news(&mut self, chore: &'static str, error: &StoreError) -> bool {
        let is_told = self.0.values().any(|trouble| trouble.knows(error));
        self.0.entry(chore).or_default().is_news(error) && !is_told
    }

    pub(super) fn is_over(&mut self, chore: &'static str) {
        self.0.remove(chore);
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

    #[test]
    fn what_one_chore_meets_again_and_again_is_told_once_although_others_work() {
        let mut troubles = Troubles::default();
        let error = StoreError::Protocol("refused".to_owned());
        assert!(troubles.is_news("upkeep", &error));
        for _ in 0..3 {
            troubles.is_over("repair");
            assert!(!troubles.is_news("upkeep", &error));
        }
        troubles.is_over("upkeep");
        assert!(troubles.is_news("upkeep", &error));
    }

    #[test]
    fn what_keeps_all_chores_from_their_work_is_told_once() {
        let mut troubles = Troubles::default();
        assert!(troubles.is_news("repair", &StoreError::ConnectionLost));
        assert!(!troubles.is_news("look", &StoreError::ConnectionLost));
        troubles.is_over("repair");
        assert!(!troubles.is_news("look", &StoreError::ConnectionLost));
    }
}
