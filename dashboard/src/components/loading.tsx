import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** After this long somebody wonders whether it still comes. */
const SLOW_MS = 8000;

/** Something is on its way, and said to be late when it is. */
export function Loading({ what }: { what: string }) {
  const isSlow = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (isSlow.value = true), SLOW_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {what} …{isSlow.value && ' The server has not answered yet.'}
    </div>
  );
}
