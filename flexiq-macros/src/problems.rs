//! The messages for the user, gathered so that all of them come at once.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// What is wrong with the annotated function, each at its token.
#[derive(Default)]
pub(crate) struct Problems(Vec<syn::Error>);

impl Problems {
    /// Adds a message at these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.0.push(syn::Error::new_spanned(tokens, message));
    }

    /// The value, or nothing and a message.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One `compile_error!` each.
    pub(crate) fn into_messages(self) -> TokenStream {
        self.0.into_iter().map(|error| error.into_compile_error()).collect()
    }
}
