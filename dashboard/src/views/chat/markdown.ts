import DOMPurify from 'dompurify';
import { Lexer, Marked } from 'marked';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { addCopyButtons } from './copy-code.ts';
import { runInFrame, SLICE_MS } from './frame-queue.ts';
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
    image: ({ text, href }) => link(href, messages.chat.message.image(text === '' ? href : text)),
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

/** Splits a text into Markdown blocks without parsing their content. `start` is where each begins in the text. */
function splitBlocks(text: string): { blocks: { raw: string; start: number }[]; links: Lexer['tokens']['links'] } {
  const lexer = new Lexer(marked.defaults);
  let start = 0;
  const blocks = lexer.blockTokens(text, lexer.tokens).flatMap(({ type, raw }) => {
    const block = { raw, start };
    start += raw.length;
    return type === 'space' || type === 'def' ? [] : [block];
  });
  return { blocks, links: lexer.tokens.links };
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
const loadHighlighter = loadOnce(() => import('./highlight.ts'));
const loadTypesetter = loadOnce(() => import('./typeset-math.ts'));

/**
 * Keeps the promise of a part; a failed load is tried again. Each `import()` searches the whole page for a nonce of the content
 * security policy: the thousands of blocks of a long answer would block the page for seconds.
 */
function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | null = null;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = null;
      throw error;
    });
    return loading;
  };
}

/** Colours code and typesets formulas. A block that still grows is left alone: it would be done again for every token. */
function embellish(block: HTMLElement): void {
  if (block.querySelector('pre[data-language]:not([data-language=""])') !== null) {
    void loadHighlighter().then(({ highlightCode }) => runInFrame(() => highlightCode(block)), showAsWritten);
  }
  if (block.querySelector('[data-math]') !== null) {
    void loadTypesetter().then(({ typesetFormulas }) => runInFrame(() => typesetFormulas(block)), showAsWritten);
  }
}

/** Blocks that are shown or hidden together. */
const GROUP_BLOCKS = 32;
/** The last blocks may still change with the text that follows. */
const NUM_OPEN_BLOCKS = 2;
/** A growing text is formatted again after this many times the time that it took, so that the page stays responsive. */
const REST_FACTOR = 8;

export function createMarkdownView(host: HTMLElement): MarkdownView {
  const blockViews: { raw: string; element: HTMLElement; isEmbellished: boolean }[] = [];
  let links: Lexer['tokens']['links'] = {};
  /** The start of the text whose blocks no longer change, and their number: only the text after it is parsed again. */
  let settled = { text: '', numBlocks: 0 };
  /** The text to show after the one that is being drawn. */
  let next: { readonly text: string; readonly isComplete: boolean } | null = null;
  /** Blocks that are still to be drawn, in order. */
  let todo: { readonly index: number; readonly raw: string }[] = [];
  let finish = (): void => {};
  let shown = '';
  let isScheduled = false;
  let restsUntilMs = 0;

  /** Finds the blocks to draw. */
  function start(text: string, isComplete: boolean, isStale = false): void {
    if (isComplete || !text.startsWith(settled.text)) settled = { text: '', numBlocks: 0 };
    const { text: prefix, numBlocks } = settled;
    const { blocks, links: newLinks } = splitBlocks(text.slice(prefix.length));
    const hasNewLinks = Object.entries(newLinks).some(([name, { href }]) => links[name]?.href !== href);
    links = { ...links, ...newLinks };
    // A link reference can affect any block.
    if (hasNewLinks && !isStale) {
      settled = { text: '', numBlocks: 0 };
      return start(text, isComplete, true);
    }
    todo = blocks
      .map(({ raw }, offset) => ({ index: numBlocks + offset, raw }))
      .filter(({ index, raw }) => isStale || blockViews[index]?.raw !== raw);
    finish = () => {
      for (const { element } of blockViews.splice(numBlocks + blocks.length)) {
        const group = element.parentElement;
        element.remove();
        if (group?.childElementCount === 0) group.remove();
      }
      for (const view of isComplete ? blockViews : blockViews.slice(numBlocks, -1)) {
        if (view.isEmbellished) continue;
        view.isEmbellished = true;
        embellish(view.element);
      }
      const numOpen = Math.min(NUM_OPEN_BLOCKS, blocks.length);
      const settledChars = prefix.length + (blocks.at(-numOpen)?.start ?? 0);
      settled = { text: text.slice(0, settledChars), numBlocks: numBlocks + blocks.length - numOpen };
    };
  }

  /** The browser looks at each hidden part in every frame: thousands of blocks would cost it most of the frame. */
  function groupOf(index: number): Element {
    const number = Math.floor(index / GROUP_BLOCKS);
    return host.children[number] ?? host.appendChild(document.createElement('div'));
  }

  function draw({ index, raw }: { index: number; raw: string }): void {
    const content = renderBlock(raw, links);
    if (index === 0 && blockViews.length === 0) host.replaceChildren();
    const element = blockViews[index]?.element ?? groupOf(index).appendChild(document.createElement('div'));
    element.replaceChildren(content);
    blockViews[index] = { raw, element, isEmbellished: false };
  }

  /** Thousands of nested quotes overflow the parser's stack: falls back to plain text. */
  function showPlain(text: string): void {
    blockViews.length = 0;
    todo = [];
    finish = () => {};
    settled = { text: '', numBlocks: 0 };
    const plain = document.createElement('div');
    plain.className = 'words';
    plain.textContent = text;
    host.replaceChildren(plain);
  }

  /** Draws for a part of a frame. */
  function work(): void {
    isScheduled = false;
    const startMs = performance.now();
    try {
      if (todo.length === 0 && next !== null) {
        if (startMs < restsUntilMs) return schedule();
        const { text, isComplete } = next;
        next = null;
        shown = visibleText(text);
        start(shown, isComplete);
      }
      while (todo.length > 0 && performance.now() - startMs < SLICE_MS) draw(todo.shift()!);
      if (todo.length === 0) finish();
    } catch {
      showPlain(shown);
    }
    restsUntilMs = performance.now() + REST_FACTOR * (performance.now() - startMs);
    if (todo.length > 0 || next !== null) schedule();
    else host.ariaBusy = null;
  }
  function schedule(): void {
    isScheduled = true;
    // A screen reader that reads now would miss the words that are not drawn yet.
    host.ariaBusy = 'true';
    runInFrame(work);
  }

  return {
    update(text, isComplete) {
      next = { text, isComplete };
      // The start of a text is drawn at once.
      if (!isScheduled) work();
    },
  };
}
