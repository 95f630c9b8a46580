import { type Signal, signal } from '@preact/signals';
import { onSignOut } from './session.ts';

/** What a view remembers when it is left and opened again, such as a search; whoever signs in next finds it as it began. */
export function keptSignal<T>(start: T): Signal<T> {
  const kept = signal(start);
  onSignOut(() => (kept.value = start));
  return kept;
}
