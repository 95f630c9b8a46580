import DOMPurify from 'dompurify';
import { Marked, type Token } from 'marked';
import { visibleText } from '../../format/visible-text.ts';

/** Everything an answer may be made of; what is not here is dropped by the sanitizer, whatever the parser makes of it. */
const TAGS =
  'p br hr strong em del code pre blockquote ul ol li table thead tbody tr th td h3 h4 h5 h6 a span div'.split(' ');
const ATTRIBUTES = ['href', 'title', 'start', 'align', 'class', 'data-language'];
/** Where a link may lead: pages and mail. Never scripts, data, files or other programs. */
const LINK = /^(?:https?:|mailto:)/i;

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    /** HTML in an answer is text about HTML. */
    html: ({ text }) => escape(text),
    /** A picture would tell its server who reads this, and when: its description and its address are enough. */
    image: ({ text, href }) => link(href, `image: ${text === '' ? href : text}`),
    link({ href, tokens }) {
      return link(href, null, this.parser.parseInline(tokens));
    },
    heading({ tokens, depth }) {
      // The page has its own first and second.
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    code: ({ text, lang }) =>
      `<pre data-language="${escape((lang ?? '').split(/\s/)[0]!.slice(0, 40))}"><code>${escape(text)}</code></pre>`,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
});

function link(href: string, words: string | null, html: string = escape(words!)): string {
  const address = href.trim();
  return LINK.test(address) ? `<a href="${escape(address)}">${html}</a>` : `${html} (${escape(address)})`;
}

/** One block of an answer, as elements that can do nothing. */
function renderBlock(token: Token): DocumentFragment {
  const html = marked.parser([token]);
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOWED_URI_REGEXP: LINK,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const anchor of fragment.querySelectorAll('a')) {
    anchor.target = '_blank';
    anchor.rel = 'noopener noreferrer nofollow';
  }
  for (const pre of fragment.querySelectorAll('pre')) {
    pre.tabIndex = 0; // what scrolls can be reached with the keyboard
  }
  for (const table of fragment.querySelectorAll('table')) {
    const wrap = document.createElement('div');
    wrap.className = 'table-wrap';
    wrap.tabIndex = 0;
    table.replaceWith(wrap);
    wrap.append(table);
  }
  return fragment;
}

/** Shows a text that grows: blocks that are as they were stay, with what is selected in them. */
export interface MarkdownView {
  update(text: string): void;
}

export function createMarkdownView(host: HTMLElement): MarkdownView {
  const blocks: { raw: string; element: HTMLElement }[] = [];
  let numLinks = 0;
  return {
    update(text) {
      const tokens = marked.lexer(visibleText(text));
      const shown = tokens.filter(({ type }) => type !== 'space' && type !== 'def');
      // An address that is told at the end belongs to links all over the text.
      const isStale = Object.keys(tokens.links).length !== numLinks;
      numLinks = Object.keys(tokens.links).length;
      for (const [index, token] of shown.entries()) {
        const known = blocks[index];
        if (known?.raw === token.raw && !isStale) continue;
        const element = known?.element ?? host.appendChild(document.createElement('div'));
        element.replaceChildren(renderBlock(token));
        blocks[index] = { raw: token.raw, element };
      }
      for (const { element } of blocks.splice(shown.length)) element.remove();
    },
  };
}
