import { useSignal } from '@preact/signals';

/** Runs one server action at a time and keeps its error until the next success. */
export function useAction() {
  const failure = useSignal<unknown>(null);
  const busyWith = useSignal('');
  async function act(name: string, work: () => Promise<unknown>): Promise<void> {
    if (busyWith.value !== '') return;
    busyWith.value = name;
    try {
      await work();
      failure.value = null;
    } catch (error) {
      failure.value = error;
    } finally {
      busyWith.value = '';
    }
  }
  return { failure, busyWith, act };
}
