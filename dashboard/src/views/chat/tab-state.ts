import { signal } from '@preact/signals';
import type { AnswerEvent } from '../../api/chat.ts';
import type { ChatRequest } from '../../api/types.ts';
import { onSignOut, permissions } from '../../app/session.ts';

/** A model that runs in this tab. */
export interface TabModel {
  readonly id: string;
  readonly numThreads: number;
  answer(request: ChatRequest, signal: AbortSignal): AsyncIterable<AnswerEvent>;
  dispose(): Promise<void>;
}

/** Null: the server answers. */
export const tabModel = signal<TabModel | null>(null);
/** Why the model of the tab ended by itself; empty: it did not. */
export const tabFailure = signal('');

export const isInTab = (model: string): boolean => tabModel.value?.id === model;

/** Whether this browser can store and run models, and the key may download them. */
export const canRunInTab = (): boolean =>
  permissions.value.download && isSecureContext && typeof navigator.storage?.getDirectory === 'function';

export async function leaveTab(): Promise<void> {
  const model = tabModel.value;
  tabModel.value = null;
  await model?.dispose();
}

onSignOut(() => {
  tabFailure.value = '';
  void leaveTab();
});
