import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { messages } from '../messages/index.ts';

/** After this delay the user is told that the server has not answered. */
const SLOW_MS = 8000;

/** A progress indicator that reports a slow server. */
export function Loading({ label }: { label: string }) {
  const isSlow = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (isSlow.value = true), SLOW_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {label}…{isSlow.value && ` ${messages.components.slowServer}`}
    </div>
  );
}
