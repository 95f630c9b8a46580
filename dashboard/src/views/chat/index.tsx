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
import { type Diversion, useUpload } from '../../components/use-upload.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { announcement, sendMessage, stopAnswer } from './answer.ts';
import { Composer } from './composer.tsx';
import { ConversationList } from './conversation-list.tsx';
import { ImageList } from './image-list.tsx';
import { attachImage, removeImage, takeImages, unsentImages } from './images.ts';
import { loadModels, modelOf, models, modelsFailure, seesImages, waitForModel } from './models.ts';
import { SettingsDialog } from './settings-dialog.tsx';
import {
  configure,
  current,
  loadConversation,
  openConversation,
  openStore,
  orderedConversations,
  startConversation,
} from './store.ts';
import { TabNote, TabButton } from './tab-controls.tsx';
import { isInTab } from './tab-state.ts';
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
  // Its messages are missing if a link opened it before the list was read, or if another page has changed it since.
  useEffect(() => {
    if (conversation !== null) loadConversation(conversation.id);
  }, [conversation?.id, conversation?.isLoaded]);
  const canAttach = hasPart('memory') && permissions.value.write;
  // Answers in this conversation use the added files.
  const upload = useUpload(
    canAttach,
    (numAdded) => {
      if (numAdded === 0 || conversation === null) return;
      configure(conversation.id, { settings: { ...conversation.settings, usesMemory: true } });
    },
    async (file) => {
      // Images are for the model: the memory stores texts only.
      if (file.type.startsWith('image/')) return attach(file);
      return canAttach ? 'none' : { refusal: text.fileRefused(visibleText(file.name)) };
    },
  );
  if (conversation === null) return null;
  const model = modelOf(conversation.model);
  const canSee = seesImages(model) === true && !isInTab(model);
  const images = unsentImages(conversation.id);
  async function attach(file: File): Promise<Diversion> {
    const used = await waitForModel(conversation!.model);
    if (seesImages(used) === false) return { refusal: text.images.refused(visibleText(file.name), labelOf(used)) };
    const refusal = await attachImage(conversation!.id, file);
    return refusal === null ? 'taken' : { refusal };
  }
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
          <TabButton model={model} label={labelOf(model)} />
          <Button kind="plain" icon="settings" label={text.settings} onClick={() => (openDialog.value = 'settings')} />
          <Button kind="plain" icon="plus" label={text.newConversation} onClick={startConversation} />
        </div>
        {modelsFailure.value !== '' && <ErrorNotice error={modelsFailure.value} onRetry={() => void loadModels()} />}
        <TabNote model={model} />
        {conversation.isLoaded ? (
          <Thread conversation={conversation} />
        ) : (
          <div class="thread">
            <Loading label={text.loadingConversation} />
          </div>
        )}
        <UploadState upload={upload} />
        <ImageList images={images} onRemove={(image) => removeImage(conversation.id, image)} />
        <Composer
          attach={
            canAttach || canSee ? (
              <FilePicker
                upload={upload}
                icon="plus"
                label={canAttach ? (canSee ? text.images.addWithFiles : text.addFiles) : text.images.add}
              />
            ) : null
          }
          hasImages={images.length > 0}
          key={conversation.id}
          conversationId={conversation.id}
          isAnswering={isAnswering}
          onSend={(question) =>
            void waitForModel(conversation.model).then((name) =>
              sendMessage(conversation.id, question, name, takeImages(conversation.id)),
            )
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

/** The name of a model for people. */
function labelOf(id: string): string {
  const entry = models.value.find((one) => one.id === id);
  return visibleText(entry === undefined ? id : modelLabel(entry, models.value));
}

/** The state of a model, if it is not loaded. */
function noteOf({ id, state, candidates }: ModelEntry): string {
  if (isInTab(id)) return text.tab.optionNote;
  if (candidates !== undefined) return text.routerNote;
  return state === undefined ? '' : text.stateNotes[state];
}
