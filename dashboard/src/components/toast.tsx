import { signal } from '@preact/signals';

const DISPLAY_MS = 5000;
const MAX_TOASTS = 3;
const toasts = signal<readonly { readonly id: number; readonly text: string }[]>([]);
let lastId = 0;

/** Briefly confirms a completed action. Errors stay next to the action that failed: `ErrorNotice`. */
export function showToast(text: string): void {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text }].slice(-MAX_TOASTS);
  setTimeout(() => (toasts.value = toasts.value.filter((toast) => toast.id !== id)), DISPLAY_MS);
}

/** Removes all toasts, so that the next user does not see them. */
export function clearToasts(): void {
  toasts.value = [];
}

/** The container of the toasts; rendered once per page. */
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
