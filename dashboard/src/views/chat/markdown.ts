import DOMPurify from 'dompurify';
import { Lexer, Marked, type Token } from 'marked';
import { visibleText } from '../../format/visible-text.ts';

/** Everything an answer may be made of; what is not here is dropped by the sanitizer, whatever the parser makes of it. */
const TAGS =
  'p br hr strong em del code pre blockquote ul ol li table thead tbody tr th td h3 h4 h5 h6 a span div'.split(' ');
const ATTRIBUTES = ['href', 'title', 'start', 'align', 'data-language'];
/** Where a link may lead: pages and mail. Never scripts, data, files or other programs. */
const LINK = /^(?:https?:|mailto:)/i;
/**
 * Signs of emphasis, links and code in one paragraph: the parser tries each with each, and 15 000 characters made of them take it
 * seconds. A paragraph with more of them is not formatted.
 */
const MAX_SIGNS = 400;
const SIGNS = /[*_~`[\]<&!\\]/g;

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

/** A text in blocks, without a look inside them. */
function cutBlocks(text: string): { blocks: Token[]; links: Lexer['tokens']['links'] } {
  const lexer = new Lexer(marked.defaults);
  const tokens = lexer.blockTokens(text, lexer.tokens);
  return { blocks: tokens.filter(({ type }) => type !== 'space' && type !== 'def'), links: lexer.tokens.links };
}

/** One block, parsed to its end, as elements that can do nothing. */
function renderBlock(raw: string, links: Lexer['tokens']['links']): DocumentFragment {
  const lexer = new Lexer(marked.defaults);
  lexer.tokens.links = links;
  lexer.blockTokens(raw, lexer.tokens);
  for (const { src, tokens } of lexer.inlineQueue) {
    if ((src.match(SIGNS)?.length ?? 0) <= MAX_SIGNS) lexer.inlineTokens(src, tokens);
    else tokens.push({ type: 'text', raw: src, text: src, escaped: false });
  }
  const html = marked.parser(lexer.tokens);
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOWED_URI_REGEXP: LINK,
    ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== 'href'), // else they too would have to be addresses
    RETURN_DOM_FRAGMENT: true,
  });
  return dress(fragment);
}

/** What the parser cannot say: where links open, and that what scrolls can be reached with the keyboard. */
function dress(fragment: DocumentFragment): DocumentFragment {
  for (const anchor of fragment.querySelectorAll('a')) {
    anchor.target = '_blank';
    anchor.rel = 'noopener noreferrer nofollow';
  }
  for (const pre of fragment.querySelectorAll('pre')) pre.tabIndex = 0;
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
  const shown: { raw: string; element: HTMLElement }[] = [];
  let numLinks = 0;

  function format(text: string): void {
    const { blocks, links } = cutBlocks(text);
    // An address that is told at the end belongs to links all over the text.
    const isStale = Object.keys(links).length !== numLinks;
    numLinks = Object.keys(links).length;
    for (const [index, { raw }] of blocks.entries()) {
      const known = shown[index];
      if (known?.raw === raw && !isStale) continue;
      const content = renderBlock(raw, links);
      const element = known?.element ?? host.appendChild(document.createElement('div'));
      element.replaceChildren(content);
      shown[index] = { raw, element };
    }
    for (const { element } of shown.splice(blocks.length)) element.remove();
  }

  return {
    update(text) {
      const visible = visibleText(text);
      try {
        format(visible);
      } catch {
        // Thousands of quotes inside each other are more than the parser's stack: then it is text.
        shown.length = 0;
        const plain = document.createElement('div');
        plain.className = 'words';
        plain.textContent = visible;
        host.replaceChildren(plain);
      }
    },
  };
}
