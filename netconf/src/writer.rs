//! XML out.

/// Writes elements one after the other; the names that it is given are right already.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    text: String,
}

impl Writer {
    /// `<name>`
    pub(crate) fn open(&mut self, name: &str) {
        self.raw("<");
        self.raw(name);
        self.raw(">");
    }

    /// `<name xmlns="namespace">`
    pub(crate) fn open_in(&mut self, name: &str, namespace: &str) {
        self.begin(name);
        self.attribute("xmlns", namespace);
        self.raw(">");
    }

    /// `<name`, to be followed by attributes and `>` or `/>`.
    pub(crate) fn begin(&mut self, name: &str) {
        self.raw("<");
        self.raw(name);
    }

    /// ` name="value"`
    pub(crate) fn attribute(&mut self, name: &str, value: &str) {
        self.raw(" ");
        self.raw(name);
        self.raw("=\"");
        escape(&mut self.text, value, true);
        self.raw("\"");
    }

    /// `</name>`
    pub(crate) fn close(&mut self, name: &str) {
        self.raw("</");
        self.raw(name);
        self.raw(">");
    }

    /// `<name/>`
    pub(crate) fn empty(&mut self, name: &str) {
        self.raw("<");
        self.raw(name);
        self.raw("/>");
    }

    /// `<name>text</name>`
    pub(crate) fn leaf(&mut self, name: &str, text: &str) {
        self.open(name);
        self.text(text);
        self.close(name);
    }

    /// `<name attribute="value">text</name>`
    pub(crate) fn leaf_with(&mut self, name: &str, attributes: &[(String, &str)], text: &str) {
        self.begin(name);
        for (attribute, value) in attributes {
            self.attribute(attribute, value);
        }
        self.raw(">");
        self.text(text);
        self.close(name);
    }

    /// Text between elements.
    pub(crate) fn text(&mut self, text: &str) {
        escape(&mut self.text, text, false);
    }

    /// XML that is XML already.
    pub(crate) fn raw(&mut self, xml: &str) {
        self.text.push_str(xml);
    }

    /// How much was written.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Takes everything back that was written since it was `length` bytes long.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    /// What was written.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Text as it stands in an element or in an attribute with double quotes. Characters that XML 1.0 cannot carry
/// (2.2) become U+FFFD.
pub(crate) fn escape(out: &mut String, text: &str, attribute: bool) {
    let special = |byte: u8| matches!(byte, b'&' | b'<' | b'>' | b'"' | 0..=0x1f | 0xef);
    if !text.bytes().any(special) {
        out.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if attribute => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\n' if attribute => out.push_str("&#10;"),
            '\t' if attribute => out.push_str("&#9;"),
            '\n' | '\t' => out.push(character),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn whatever_is_written_can_be_read() {
        for text in ["a<b>&\"'c", "]]>]]>", "\u{0}\u{1}\u{b}\u{fffe}é", " \t\r\n "] {
            let (mut content, mut attribute) = (String::new(), String::new());
            escape(&mut content, text, false);
            escape(&mut attribute, text, true);
            let document = format!("<a b=\"{attribute}\">{content}</a>");
            let document = roxmltree::Document::parse(&document).unwrap();
            let read = text.replace(['\u{0}', '\u{1}', '\u{b}', '\u{fffe}'], "\u{fffd}");
            assert_eq!(document.root_element().text(), Some(read.as_str()));
            assert_eq!(document.root_element().attribute("b"), Some(read.as_str()));
            assert!(!content.contains("]]>"));
        }
    }
}
