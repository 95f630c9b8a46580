import DOMPurify from 'dompurify';
import { renderToString } from 'katex';
import { MAX_FORMULA_CHARS, texOf } from './math.ts';

/** MathML needs no fonts and no inline styles, which the content security policy blocks. */
const OPTIONS = { output: 'mathml', throwOnError: true, strict: 'ignore', trust: false, maxSize: 20, maxExpand: 300 } as const; // prettier-ignore

/** Replaces formulas by MathML; one with an error stays as it is written. */
export function typesetFormulas(host: ParentNode): void {
  for (const element of host.querySelectorAll<HTMLElement>('[data-math]:not([data-typeset])')) {
    element.dataset['typeset'] = '';
    const tex = texOf(element.textContent);
    if (tex.length > MAX_FORMULA_CHARS) continue;
    const math = render(tex, element.dataset['math'] === 'display');
    if (math !== null) element.replaceChildren(math);
  }
}

function render(tex: string, displayMode: boolean): Node | null {
  try {
    const page = new DOMParser().parseFromString(renderToString(tex, { ...OPTIONS, displayMode }), 'text/html');
    const math = page.querySelector('math');
    if (math === null) return null;
    // The sanitizer would keep the text of the source beside the formula.
    for (const annotation of math.querySelectorAll('annotation')) annotation.remove();
    const clean = DOMPurify.sanitize(math, {
      USE_PROFILES: { mathMl: true },
      // Colours of an answer may be unreadable in one of the themes.
      FORBID_ATTR: ['style', 'href', 'xlink:href', 'id', 'class', 'mathcolor', 'mathbackground'],
      RETURN_DOM_FRAGMENT: true,
    });
    return clean;
  } catch {
    return null;
  }
}
