import DOMPurify from 'dompurify';
import { Lexer, Marked, type Token } from 'marked';
import { visibleText } from '../../format/visible-text.ts';
import { addCopyButtons } from './copy-code.ts';
import { MATH_RULES } from './math.ts';

/** The allowed elements of an answer; the sanitizer drops all others, whatever the parser emits. */
const TAGS =
  'p br hr strong em del code pre blockquote ul ol li table thead tbody tr th td h3 h4 h5 h6 a span div'.split(' ');
const ATTRIBUTES = ['href', 'title', 'start', 'align', 'data-language', 'data-math'];
/** Allowed link schemes: web pages and mail, never scripts, data, files or other programs. */
const LINK = /^(?:https?:|mailto:)/i;
/**
 * Maximum number of markup characters (emphasis, links, code) in a paragraph; beyond it the paragraph stays unformatted. The parser is
 * quadratic in them: 15,000 such characters take it seconds.
 */
const MAX_MARKUP_CHARS = 400;
const MARKUP_CHARS = /[*_~`[\]<&!\\]/g;

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions: [...MATH_RULES],
  renderer: {
    /** HTML in an answer is shown as text. */
    html: ({ text }) => escape(text),
    /** Images become links, because loading one would reveal the reader to its server. */
    image: ({ text, href }) => link(href, `image: ${text === '' ? href : text}`),
    link({ href, tokens }) {
      return link(href, null, this.parser.parseInline(tokens));
    },
    heading({ tokens, depth }) {
      // Levels 1 and 2 belong to the page.
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    code: ({ text, lang }) =>
      `<pre data-language="${escape((lang ?? '').split(/\s/)[0]!.slice(0, 40))}"><code>${escape(text)}</code></pre>`,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
});

function link(href: string, text: string | null, html: string = escape(text!)): string {
  const url = href.trim();
  return LINK.test(url) ? `<a href="${escape(url)}">${html}</a>` : `${html} (${escape(url)})`;
}

/** Splits a text into Markdown blocks without parsing their content. */
function splitBlocks(text: string): { blocks: Token[]; links: Lexer['tokens']['links'] } {
  const lexer = new Lexer(marked.defaults);
  const tokens = lexer.blockTokens(text, lexer.tokens);
  return { blocks: tokens.filter(({ type }) => type !== 'space' && type !== 'def'), links: lexer.tokens.links };
}

/** Parses and sanitizes one block. */
function renderBlock(raw: string, links: Lexer['tokens']['links']): DocumentFragment {
  const lexer = new Lexer(marked.defaults);
  lexer.tokens.links = links;
  lexer.blockTokens(raw, lexer.tokens);
  for (const { src, tokens } of lexer.inlineQueue) {
    if ((src.match(MARKUP_CHARS)?.length ?? 0) <= MAX_MARKUP_CHARS) lexer.inlineTokens(src, tokens);
    else tokens.push({ type: 'text', raw: src, text: src, escaped: false });
  }
  const html = marked.parser(lexer.tokens);
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOWED_URI_REGEXP: LINK,
    ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== 'href'), // otherwise their values would have to be URLs
    RETURN_DOM_FRAGMENT: true,
  });
  return addBehaviour(fragment);
}

/** Opens links in a new tab and makes scrolling blocks reachable with the keyboard. */
function addBehaviour(fragment: DocumentFragment): DocumentFragment {
  for (const anchor of fragment.querySelectorAll('a')) {
    anchor.target = '_blank';
    anchor.rel = 'noopener noreferrer nofollow';
  }
  for (const pre of fragment.querySelectorAll('pre')) pre.tabIndex = 0;
  addCopyButtons(fragment);
  for (const table of fragment.querySelectorAll('table')) {
    const wrap = document.createElement('div');
    wrap.className = 'table-wrap';
    wrap.tabIndex = 0;
    table.replaceWith(wrap);
    wrap.append(table);
  }
  return fragment;
}

/** Shows a growing text; unchanged blocks keep their elements, and with them the user's selection. */
export interface MarkdownView {
  /** `isComplete`: no more text follows. */
  update(text: string, isComplete: boolean): void;
}

/** If a part cannot be loaded, code and formulas stay as they are written. */
const showAsWritten = (): void => {};
/** Large parts, loaded when the first answer needs them. */
const loadHighlighter = () => import('./highlight.ts');
const loadTypesetter = () => import('./typeset-math.ts');

/** Colours code and typesets formulas. A block that still grows is left alone: it would be done again for every token. */
function embellish(block: HTMLElement): void {
  if (block.querySelector('pre[data-language]:not([data-language=""])') !== null) {
    void loadHighlighter().then(({ highlightCode }) => highlightCode(block), showAsWritten);
  }
  if (block.querySelector('[data-math]') !== null) {
    void loadTypesetter().then(({ typesetFormulas }) => typesetFormulas(block), showAsWritten);
  }
}

export function createMarkdownView(host: HTMLElement): MarkdownView {
  const blockViews: { raw: string; element: HTMLElement; isEmbellished: boolean }[] = [];
  let numLinks = 0;

  function format(text: string, isComplete: boolean): void {
    const { blocks, links } = splitBlocks(text);
    // A link reference at the end of the text can affect any block.
    const isStale = Object.keys(links).length !== numLinks;
    numLinks = Object.keys(links).length;
    for (const [index, { raw }] of blocks.entries()) {
      const current = blockViews[index];
      if (current?.raw === raw && !isStale) continue;
      const content = renderBlock(raw, links);
      const element = current?.element ?? host.appendChild(document.createElement('div'));
      element.replaceChildren(content);
      blockViews[index] = { raw, element, isEmbellished: false };
    }
    for (const { element } of blockViews.splice(blocks.length)) element.remove();
    for (const view of isComplete ? blockViews : blockViews.slice(0, -1)) {
      if (view.isEmbellished) continue;
      view.isEmbellished = true;
      embellish(view.element);
    }
  }

  return {
    update(text, isComplete) {
      const visible = visibleText(text);
      try {
        format(visible, isComplete);
      } catch {
        // Thousands of nested quotes overflow the parser's stack: fall back to plain text.
        blockViews.length = 0;
        const plain = document.createElement('div');
        plain.className = 'words';
        plain.textContent = visible;
        host.replaceChildren(plain);
      }
    },
  };
}
