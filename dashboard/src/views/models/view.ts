import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

export const view: View = {
  id: 'models',
  title: messages.models.title,
  icon: 'models',
  order: 6,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
