import { signal } from '@preact/signals';

const SHOWN_MS = 5000;
const MAX_TOASTS = 3;
const toasts = signal<readonly { readonly id: number; readonly text: string }[]>([]);
let lastId = 0;

/** Says for a moment that something was done. What went wrong stays where it happened: `ErrorNotice`. */
export function showToast(text: string): void {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text }].slice(-MAX_TOASTS);
  setTimeout(() => (toasts.value = toasts.value.filter((toast) => toast.id !== id)), SHOWN_MS);
}

/** Takes away those that are shown: what they say is not for whoever comes next. */
export function clearToasts(): void {
  toasts.value = [];
}

/** Where they appear; once on the page. */
export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text }) => (
        <div class="toast" key={id}>
          {text}
        </div>
      ))}
    </div>
  );
}
