"""S3 SelectObjectContent in front of s3api."""
