import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { messages } from '../../messages/index.ts';
import { models } from './models.ts';
import { canRunInTab, isInTab, leaveTab, tabFailure } from './tab-state.ts';
import type { TabDialogProps } from './tab-dialog.tsx';

const text = messages.chat.tab;

/** Opens the dialog that runs a model in the tab; hidden where that cannot work. */
export function TabButton({ model, label }: { model: string; label: string }) {
  const dialog = useSignal<{ readonly Dialog: ComponentType<TabDialogProps> } | null>(null);
  const failure = useSignal<unknown>(null);
  const entry = models.value.find(({ id }) => id === model);
  // Adapters, saved models and the router have no file of their own.
  const hasFile = entry?.state !== undefined && entry.parent === undefined;
  if (!hasFile || !canRunInTab()) return null;
  async function open(): Promise<void> {
    try {
      dialog.value = { Dialog: (await import('./tab-dialog.tsx')).TabDialog };
    } catch (error) {
      failure.value = error;
    }
  }
  return (
    <>
      <Button kind="plain" icon="download" label={text.run} isPressed={isInTab(model)} onClick={() => void open()} />
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      {dialog.value !== null && (
        <dialog.value.Dialog model={model} label={label} onClose={() => (dialog.value = null)} />
      )}
    </>
  );
}

/** Says that the tab answers, and not the server. */
export function TabNote({ model }: { model: string }) {
  if (tabFailure.value !== '') return <ErrorNotice error={tabFailure.value} />;
  if (!isInTab(model)) return null;
  return (
    <p class="tab-note small" role="status">
      <Badge tone="accent">{text.badge}</Badge>
      {text.note}
      <Button isSmall onClick={() => void leaveTab()}>
        {text.stop}
      </Button>
    </p>
  );
}
