import DOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/common';

/** Longer code takes longer than a frame. */
const MAX_CODE_CHARS = 20_000;

/** Colours the code blocks whose language is known. */
export function highlightCode(host: ParentNode): void {
  for (const pre of host.querySelectorAll<HTMLElement>('pre[data-language]:not([data-highlighted])')) {
    pre.dataset['highlighted'] = '';
    const language = pre.dataset['language']!.toLowerCase();
    const code = pre.querySelector('code');
    if (code === null || code.textContent.length > MAX_CODE_CHARS || hljs.getLanguage(language) === undefined) continue;
    const { value } = hljs.highlight(code.textContent, { language, ignoreIllegals: true });
    const clean = DOMPurify.sanitize(value, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'], RETURN_DOM_FRAGMENT: true }); // prettier-ignore
    code.replaceChildren(clean);
  }
}
