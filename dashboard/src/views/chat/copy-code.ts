import { messages } from '../../messages/index.ts';

const text = messages.chat.message;
const CONFIRMATION_MS = 1500;

/** Puts a button beside each code block that copies it. */
export function addCopyButtons(fragment: DocumentFragment): void {
  // Browsers expose no clipboard to pages served over plain HTTP from another machine.
  if (navigator.clipboard === undefined) return;
  for (const pre of fragment.querySelectorAll('pre')) {
    const frame = document.createElement('div');
    frame.className = 'code-block';
    pre.replaceWith(frame);
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'button small copy-code';
    label(button, text.copyButton, text.copyCode);
    button.addEventListener('click', () => void copy(pre, button).catch(() => {}));
    frame.append(pre, button);
  }
}

async function copy(pre: HTMLElement, button: HTMLButtonElement): Promise<void> {
  await navigator.clipboard.writeText(pre.textContent);
  label(button, text.copied, text.codeCopied);
  setTimeout(() => label(button, text.copyButton, text.copyCode), CONFIRMATION_MS);
}

function label(button: HTMLButtonElement, title: string, name: string): void {
  button.textContent = title;
  button.setAttribute('aria-label', name);
}
