// SPDX-License-Identifier: Apache-2.0
#ifdef __CLING__
#pragma link off all globals;
#pragma link off all classes;
#pragma link off all functions;
#pragma link C++ class TScif;
#pragma link C++ class TScifFile;
#pragma link C++ class TServerScif - ;
#endif
