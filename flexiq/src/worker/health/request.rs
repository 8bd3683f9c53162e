//! What is asked, and the answer to it: as much of HTTP/1.1 (RFC 9112) as a probe speaks.

use std::fmt;

use super::{Health, in_words};

/// An answer to a request, written out as HTTP by its `Display`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: &'static str,
    text: String,
    has_body: bool,
}

impl Answer {
    fn new(status: &'static str, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), has_body: true }
    }

    /// For a head that was not read to its end.
    pub(super) fn too_large() -> Self {
        Self::new("431 Request Header Fields Too Large", "the request's head is too large")
    }

    fn of(troubles: String, well: &str) -> Self {
        if troubles.is_empty() {
            Self::new("200 OK", well)
        } else {
            Self::new("503 Service Unavailable", troubles)
        }
    }
}

/// Answers a request of this head; asks for the health only if it is asked for.
pub(super) fn answer(head: &[u8], health: impl FnOnce() -> Health) -> Answer {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, target, version] = words[..] else { return malformed() };
    if !version.starts_with(b"HTTP/1.") {
        return malformed();
    }
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let answer = match path {
        b"/live" | b"/ready" if method != b"GET" && method != b"HEAD" => {
            Answer::new("405 Method Not Allowed", "ask by GET or HEAD")
        }
        b"/live" => Answer::of(in_words(health().deadly()), "live"),
        b"/ready" => Answer::of(in_words(health().troubles()), "ready"),
        _ => Answer::new("404 Not Found", "ask for /live or /ready"),
    };
    Answer { has_body: method != b"HEAD", ..answer }
}

fn malformed() -> Answer {
    Answer::new("400 Bad Request", "this is no request of HTTP/1.1")
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, text, .. } = self;
        write!(f, "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n")?;
        if status.starts_with("405") {
            f.write_str("Allow: GET, HEAD\r\n")?;
        }
        let length = text.len() + 1;
        write!(f, "Cache-Control: no-store\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
        if self.has_body { writeln!(f, "{text}") } else { Ok(()) }
    }
}
