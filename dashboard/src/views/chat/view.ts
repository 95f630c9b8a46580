import { isServerEmpty } from '../../app/session.ts';
import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

export const view: View = {
  id: 'chat',
  title: messages.chat.title,
  icon: 'chat',
  order: 1,
  isOpenTo: ({ write }) => write && !isServerEmpty(),
  load: () => import('./index.tsx'),
};
