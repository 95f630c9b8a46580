import { useSignal } from '@preact/signals';

/** Something that is asked of the server with a click: one at a time, and what went wrong stays to be read. */
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
