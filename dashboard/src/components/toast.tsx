import { signal } from '@preact/signals';
import { Button } from './button.tsx';

const DISPLAY_MS = 5000;
/** With a button, there is time to read and press it. */
const ACTION_DISPLAY_MS = 10_000;
const MAX_TOASTS = 3;

interface ToastAction {
  readonly label: string;
  readonly run: () => void;
}

const toasts = signal<readonly { readonly id: number; readonly text: string; readonly action: ToastAction | null }[]>(
  [],
);
let lastId = 0;

const dismiss = (id: number): void => void (toasts.value = toasts.value.filter((toast) => toast.id !== id));

/** Briefly confirms a completed action, optionally with a button. Errors stay next to the action that failed: `ErrorNotice`. */
export function showToast(text: string, action: ToastAction | null = null): void {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text, action }].slice(-MAX_TOASTS);
  setTimeout(() => dismiss(id), action === null ? DISPLAY_MS : ACTION_DISPLAY_MS);
}

/** Removes all toasts, so that the next user does not see them. */
export function clearToasts(): void {
  toasts.value = [];
}

/** The container of the toasts; rendered once per page. */
export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, action }) => (
        <div class="toast" key={id}>
          {text}
          {action !== null && (
            <Button
              isSmall
              onClick={() => {
                action.run();
                dismiss(id);
              }}
            >
              {action.label}
            </Button>
          )}
        </div>
      ))}
    </div>
  );
}
