import { type Signal, signal } from '@preact/signals';
import { onSignOut } from './session.ts';

/** Creates a signal that survives switching views, such as a search, and resets to its initial value on sign-out. */
export function sessionSignal<T>(initial: T): Signal<T> {
  const state = signal(initial);
  onSignOut(() => (state.value = initial));
  return state;
}
