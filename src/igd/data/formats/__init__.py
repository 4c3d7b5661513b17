"""One file a file format, each read as a data set.

folders     plain ones, MVTec's layout, normal/ beside abnormal/
manifest    a table of paths and labels
npz         arrays
idx         MNIST's files
cifar       CIFAR-10's batches
dicom       medical files, through their window (the extra `dicom`)
kvasir_lag  Hyper-Kvasir and LAG
"""
