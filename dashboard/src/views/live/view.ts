import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

export const view: View = {
  id: 'live',
  title: messages.live.title,
  icon: 'live',
  order: 2,
  isOpenTo: ({ operate }) => operate,
  load: () => import('./index.tsx'),
};
