import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addCommands } from '../../app/commands.ts';
import { goTo, hrefOf } from '../../app/router.ts';
import { hasPart, permissions } from '../../app/session.ts';
import type { ViewProps } from '../../app/views.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { FilePicker, UploadState } from '../../components/file-picker.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import type { ModelEntry } from '../../api/types.ts';
import { modelLabel } from '../../format/model-label.ts';
import { useUpload } from '../../components/use-upload.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { announcement, sendMessage, stopAnswer } from './answer.ts';
import { Composer } from './composer.tsx';
import { ConversationList } from './conversation-list.tsx';
import { loadModels, modelOf, models, modelsFailure, waitForModel } from './models.ts';
import { SettingsDialog } from './settings-dialog.tsx';
import { configure, current, openConversation, openStore, orderedConversations, startConversation } from './store.ts';
import { Thread } from './thread.tsx';
import { isEmpty, titleOf } from './types.ts';
import './chat.css';
import './markdown.css';

const text = messages.chat;

addCommands(() => [
  { title: text.newConversation, run: () => goTo('chat', 'new') },
  ...orderedConversations.value
    .filter((one) => !isEmpty(one))
    .map((one) => ({ title: text.conversationCommand(titleOf(one)), run: () => goTo('chat', one.id) })),
]);

/** Chat with a model. */
export default function ChatView({ path }: ViewProps) {
  const openDialog = useSignal<'settings' | 'list' | null>(null);
  useEffect(() => {
    openStore();
    void loadModels();
  }, []);
  // `#/chat/new` starts a conversation, `#/chat/ID` opens one.
  useEffect(() => {
    const [id] = path;
    if (id === 'new') startConversation();
    else if (id !== undefined) openConversation(id);
    if (id !== undefined) location.replace(hrefOf('chat')); // so that the same command works again
  }, [path[0]]);
  const conversation = current.value;
  const canAttach = hasPart('memory') && permissions.value.write;
  // Answers in this conversation use the added files.
  const upload = useUpload(
    canAttach,
    (numAdded) => {
      if (numAdded === 0 || conversation === null) return;
      configure(conversation.id, { settings: { ...conversation.settings, usesMemory: true } });
    },
    ({ name, type }) => {
      // No model of this server takes images, and the memory stores texts only.
      if (type.startsWith('image/')) return text.imageRefused(name);
      return canAttach ? null : text.fileRefused(name);
    },
  );
  if (conversation === null) return null;
  const model = modelOf(conversation.model);
  const isAnswering = conversation.messages.some(({ state }) => state === 'streaming');
  const close = (): void => void (openDialog.value = null);

  return (
    <div class="chat">
      <aside class="chat-side" aria-label={text.conversations}>
        <ConversationList />
      </aside>
      <section
        class={upload.isOver.value ? 'chat-main drop-zone is-over' : 'chat-main'}
        aria-label={text.title}
        {...upload.dropHandlers}
      >
        <h1 class="unseen">{text.title}</h1>
        <div class="chat-bar">
          <span class="chat-list-button">
            <Button kind="plain" icon="list" label={text.conversations} onClick={() => (openDialog.value = 'list')} />
          </span>
          <select
            class="input"
            aria-label={text.model}
            value={model}
            onChange={({ currentTarget: { value } }) => configure(conversation.id, { model: value })}
          >
            {models.value.map((entry) => (
              <option key={entry.id} value={entry.id} title={visibleText(entry.id)}>
                {visibleText(modelLabel(entry, models.value))}
                {noteOf(entry)}
              </option>
            ))}
          </select>
          <Button kind="plain" icon="settings" label={text.settings} onClick={() => (openDialog.value = 'settings')} />
          <Button kind="plain" icon="plus" label={text.newConversation} onClick={startConversation} />
        </div>
        {modelsFailure.value !== '' && <ErrorNotice error={modelsFailure.value} onRetry={() => void loadModels()} />}
        {conversation.isLoaded ? <Thread conversation={conversation} /> : <Loading label={text.loadingConversation} />}
        <UploadState upload={upload} />
        <Composer
          attach={canAttach ? <FilePicker upload={upload} icon="plus" label={text.addFiles} /> : null}
          key={conversation.id}
          conversationId={conversation.id}
          isAnswering={isAnswering}
          onSend={(question) =>
            void waitForModel(conversation.model).then((name) => sendMessage(conversation.id, question, name))
          }
          onStop={() => stopAnswer(conversation.id)}
          onFiles={(files) => void upload.add(files)}
        />
        <p class="unseen" role="status">
          {announcement}
        </p>
      </section>
      {openDialog.value === 'settings' && <SettingsDialog conversation={conversation} onClose={close} />}
      {openDialog.value === 'list' && (
        <Dialog title={text.conversations} onClose={close}>
          <ConversationList onSelect={close} />
        </Dialog>
      )}
    </div>
  );
}

/** The state of a model, if it is not loaded. */
function noteOf({ state, candidates }: ModelEntry): string {
  if (candidates !== undefined) return text.routerNote;
  return state === undefined ? '' : text.stateNotes[state];
}
