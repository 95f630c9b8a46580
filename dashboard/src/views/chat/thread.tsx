import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { EmptyState } from '../../components/empty-state.tsx';
import { type MessageProps, MessageView } from './message-view.tsx';
import type { Conversation } from './types.ts';

/** Nearer to the end than this somebody reads along, and is taken along. */
const FOLLOW_PX = 80;

/** The messages of a conversation; it follows an answer unless somebody has scrolled away from its end. */
export function Thread({ conversation }: { conversation: Conversation }) {
  const scroller = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const { id, messages } = conversation;
  const isIdle = !messages.some(({ state }) => state === 'streaming');

  useLayoutEffect(() => {
    isFollowing.current = true;
  }, [id, messages.length]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element !== null && isFollowing.current) element.scrollTop = element.scrollHeight;
  }, [messages]);

  return (
    <div
      class="thread"
      ref={scroller}
      role="log"
      aria-label="Conversation"
      aria-live="off"
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) =>
        (isFollowing.current = scrollHeight - scrollTop - clientHeight < FOLLOW_PX)
      }
    >
      {messages.length === 0 ? (
        <EmptyState icon="chat" title="What would you like to know?">
          <p>Your words go to this server and nowhere else.</p>
        </EmptyState>
      ) : (
        <div class="thread-column">
          {messages.map((message, index) => (
            <Kept key={message.id} {...{ conversation, message, isIdle, isLast: index === messages.length - 1 }} />
          ))}
        </div>
      )}
    </div>
  );
}

/** Drawn again only when it is another: with every word of an answer the others would be, too. */
function Kept({ conversation, message, isIdle, isLast }: MessageProps) {
  const { id, model } = conversation;
  return useMemo(
    () => <MessageView conversation={{ id, model }} message={message} isIdle={isIdle} isLast={isLast} />,
    [id, model, message, isIdle, isLast],
  );
}
